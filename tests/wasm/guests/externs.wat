;; A guest whose table holds references of the host: no copy of them means anything.
(module
  (memory 1)
  (table 1 externref))
