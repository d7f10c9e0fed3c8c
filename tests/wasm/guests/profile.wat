;; Who grows the memory: a function that the module names, by way of one that it does not; and who calls the host.
(module
  (import "env" "take" (func $take (param i32) (result i32)))
  (import "env" "release" (func $release (param i32)))
  (memory (export "memory") 2)
  (func $inner (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "outer") (param i32) (result i32) (call $inner (local.get 0)))
  (func (export "other") (param i32) (result i32) (call $inner (local.get 0)))
  (func (export "borrow") (param i32) (result i32) (call $take (local.get 0)))
  (func (export "give_back") (param i32) (call $release (local.get 0)))
  (func (export "deep") (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0))
      (then (memory.grow (i32.const 1)))
      (else (call 7 (i32.sub (local.get 0) (i32.const 1)))))))
