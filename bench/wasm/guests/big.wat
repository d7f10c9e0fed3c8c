;; A heap of 16 MiB, all of it written by init. A request writes to 31 pages spread over it.
(module
  (memory (export "memory") 258)
  (func (export "init") (memory.fill (i32.const 65536) (i32.const 0x5a) (i32.const 16777216)))
  (func (export "nothing") (result i32) (i32.const 0))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "request") (param $seed i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $pages
      (i32.store offset=65536 (i32.mul (local.get $i) (i32.const 540672)) (local.get $seed))
      (local.set $sum
        (i32.add (local.get $sum) (i32.load offset=65540 (i32.mul (local.get $i) (i32.const 540672)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $pages (i32.lt_u (local.get $i) (i32.const 31))))
    (local.get $sum)))
