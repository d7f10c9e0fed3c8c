;; 192 KiB of memory. A request writes to 10 pages and reads them again.
(module
  (memory (export "memory") 3)
  (global $stack (mut i32) (i32.const 65536))
  (data (i32.const 1024) "small guest, with a little of initial data in its first page")
  (func (export "init"))
  (func (export "nothing") (result i32) (i32.const 0))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "request") (param $seed i32) (result i32)
    (local $i i32) (local $sum i32)
    (global.set $stack (i32.sub (global.get $stack) (i32.const 64)))
    (loop $pages
      (i32.store offset=2048
        (i32.shl (local.get $i) (i32.const 14))
        (i32.add (local.get $seed) (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $pages (i32.lt_u (local.get $i) (i32.const 10))))
    (local.set $i (i32.const 0))
    (loop $words
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=2048 (i32.shl (local.get $i) (i32.const 14)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $words (i32.lt_u (local.get $i) (i32.const 10))))
    (global.set $stack (i32.add (global.get $stack) (i32.const 64)))
    (local.get $sum)))
