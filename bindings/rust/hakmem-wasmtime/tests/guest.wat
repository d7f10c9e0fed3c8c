;; What a guest may do: write, grow its memory and its table, change a global, trap, fall into a loop, recurse.
(module
  (memory (export "memory") 1 1000)
  (table $t (export "table") 1 funcref)
  (global $g (export "g") (mut i32) (i32.const 7))
  (func (export "put") (param i32) (global.set $g (local.get 0)) (i32.store (i32.const 4096) (local.get 0)))
  (func (export "get") (result i32) (i32.load (i32.const 4096)))
  (func (export "global") (result i32) (global.get $g))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "widen") (param i32) (result i32) (table.grow $t (ref.null func) (local.get 0)))
  (func (export "outside") (result i32) (i32.load (i32.const 65536000)))
  (func $deep (export "deep") (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1))))
