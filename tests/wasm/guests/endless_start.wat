;; Its start function does not end.
(module
  (func $start (loop $l (br $l)))
  (start $start))
