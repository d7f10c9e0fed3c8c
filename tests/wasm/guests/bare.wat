;; A guest without a memory, whose state is a global and a table.
(module
  (type $f (func (result i32)))
  (table $t 2 4 funcref)
  (global $g (mut i64) (i64.const 1))
  (func $one (type $f) (i32.const 1))
  (func $two (type $f) (i32.const 2))
  (elem (i32.const 0) $one)
  (elem declare func $two)
  (func (export "change") (global.set $g (i64.const 40)) (table.set $t (i32.const 0) (ref.func $two)))
  (func (export "sum") (result i32)
    (i32.add (i32.wrap_i64 (global.get $g)) (call_indirect (type $f) (i32.const 0)))))
