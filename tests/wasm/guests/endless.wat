;; Functions that do not end by themselves, each in its own way.
(module
  (memory (export "memory") 1)
  (func (export "spin") (loop $l (br $l)))
  (func $twice (export "twice") (param i32)
    (if (local.get 0)
      (then
        (call $twice (i32.sub (local.get 0) (i32.const 1)))
        (call $twice (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "fill")
    (loop $l
      (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536))
      (br $l)))
  ;; Two loops that begin at one place.
  (func (export "both") (param i32)
    (loop $outer
      (loop $inner
        (br_if $inner (local.get 0)))
      (br $outer)))
  (func (export "count") (param i32) (result i32) (local i32)
    (loop $l
      (local.set 1 (i32.add (local.get 1) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get 1) (local.get 0))))
    (local.get 1)))
