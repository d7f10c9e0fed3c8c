;; A guest that chooses the numbers of its descriptors.
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_renumber" (func $renumber (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_fdstat_get" (func $stat (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) ".")
  (data (i32.const 8) "hakmem-guest")
  (func (export "_initialize"))
  ;; Opens a directory once more, with the rights that this descriptor of it has: the new one, or -1.
  (func (export "open_again") (param $dir i32) (result i32)
    (if (call $stat (local.get $dir) (i32.const 64)) (then (return (i32.const -1))))
    (if (call $path_open (local.get $dir) (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 2)
          (i64.load (i32.const 72)) (i64.load (i32.const 80)) (i32.const 0) (i32.const 32))
      (then (return (i32.const -1))))
    (i32.load (i32.const 32)))
  ;; Creates a file in a directory: its descriptor, which may write, or -1.
  (func (export "open_file") (param $dir i32) (result i32)
    (if (call $path_open (local.get $dir) (i32.const 0) (i32.const 8) (i32.const 12) (i32.const 1)
          (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 32))
      (then (return (i32.const -1))))
    (i32.load (i32.const 32)))
  (func (export "close_file") (param i32) (result i32) (call $close (local.get 0)))
  (func (export "renumber") (param i32 i32) (result i32) (call $renumber (local.get 0) (local.get 1))))
