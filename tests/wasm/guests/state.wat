;; A guest whose state is everywhere but in its memory: globals, a table, segments that can be dropped.
(module
  (memory (export "memory") 1 4)
  (table $t (export "table") 2 8 funcref)
  (global $g32 (mut i32) (i32.const 1))
  (global $g64 (mut i64) (i64.const 1))
  (global $gf (mut f64) (f64.const 1))
  (global $gs (export "single") (mut f32) (f32.const 1))
  (global $gr (mut funcref) (ref.null func))
  (table $second 1 4 funcref)
  (type $answer (func (result i32)))
  (func $one (type $answer) (i32.const 1))
  (func $two (type $answer) (i32.const 2))
  (elem (i32.const 0) func $one $two)
  (elem $passive func $two $two)
  (data $bytes "hakmem")
  (func (export "change")
    (global.set $g32 (i32.add (global.get $g32) (i32.const 41)))
    (global.set $g64 (i64.const -1))
    (global.set $gf (f64.const 0.5))
    (global.set $gs (f32.const 0.25))
    (global.set $gr (ref.func $one))
    (table.fill $second (i32.const 0) (ref.func $two) (i32.const 1))
    (drop (table.grow $second (ref.func $one) (i32.const 1)))
    (table.set $t (i32.const 0) (ref.func $two))
    (drop (table.grow $t (ref.func $one) (i32.const 3)))
    (data.drop $bytes)
    (elem.drop $passive)
    (drop (memory.grow (i32.const 1)))
    (i32.store8 (i32.const 65536) (i32.const 7)))
  ;; Every part of the state in one number.
  (func (export "sum") (result i32)
    (i32.add
      (i32.add
        (i32.add (global.get $g32) (i32.wrap_i64 (i64.mul (global.get $g64) (i64.const 100))))
        (i32.trunc_f64_s (f64.mul (global.get $gf) (f64.const 10000))))
      (i32.add
        (i32.mul (call_indirect (type $answer) (i32.const 0)) (i32.const 1000000))
        (i32.add (i32.mul (table.size $t) (i32.const 10000000)) (i32.mul (memory.size) (i32.const 100000000))))))
  ;; What the sum has no room for.
  (func (export "rest") (result i32)
    (i32.add
      (i32.add (i32.trunc_f32_s (f32.mul (global.get $gs) (f32.const 100))) (ref.is_null (global.get $gr)))
      (i32.add
        (i32.mul (table.size $second) (i32.const 1000))
        (i32.mul (ref.is_null (table.get $second (i32.const 0))) (i32.const 10000)))))
  ;; Traps if the segments are dropped.
  (func (export "init_from_segments")
    (memory.init $bytes (i32.const 0) (i32.const 0) (i32.const 6))
    (table.init $t $passive (i32.const 0) (i32.const 0) (i32.const 2))))
