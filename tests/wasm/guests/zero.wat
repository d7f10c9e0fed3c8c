;; A memory that begins without a page.
(module
  (memory (export "memory") 0 8)
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "pages") (result i32) (memory.size))
  ;; Grows by a page if there is none, and keeps a number.
  (func (export "put") (param i32)
    (if (i32.eqz (memory.size)) (then (drop (memory.grow (i32.const 1)))))
    (i32.store (i32.const 0) (local.get 0)))
  ;; The number; -1 without a page.
  (func (export "get") (result i32)
    (if (result i32) (memory.size) (then (i32.load (i32.const 0))) (else (i32.const -1)))))
