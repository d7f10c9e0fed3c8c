;; A memory of 65535 pages.
(module
  (memory 65535)
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "store") (param i32) (i32.store8 (local.get 0) (i32.const 1))))
