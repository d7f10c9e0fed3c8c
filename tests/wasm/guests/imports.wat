;; Imports what another module could change: a memory and a table.
(module
  (import "env" "memory" (memory 1 4))
  (import "env" "table" (table 2 8 funcref))
  (func $f)
  (elem declare func $f)
  (func (export "change")
    (drop (memory.grow (i32.const 1)))
    (i32.store (i32.const 65536) (i32.const 7))
    (i32.store (i32.const 0) (i32.const 7))
    (table.set 0 (i32.const 1) (ref.func $f))
    (drop (table.grow 0 (ref.func $f) (i32.const 2))))
  (func (export "sum") (result i32)
    (i32.add
      (i32.add (i32.load (i32.const 0)) (i32.mul (memory.size) (i32.const 100)))
      (i32.add
        (i32.mul (table.size 0) (i32.const 10000))
        (i32.mul (ref.is_null (table.get 0 (i32.const 1))) (i32.const 1000000))))))
