;; A guest that waits for its host between what it does, so that its stack lives meanwhile.
(module
  (import "host" "pause" (func $pause))
  (memory (export "memory") 1 4)
  (func (export "run") (param i32) (result i32)
    (local $n i32)
    (loop $more
      (call $pause)
      (i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (i32.const 1)))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $more (i32.lt_u (local.get $n) (local.get 0))))
    (i32.load (i32.const 64)))
  (func $deep (export "deep") (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1))))
