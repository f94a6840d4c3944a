(module
  (import "sandlite" "pipe" (func $pipe (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "\40\00\00\00\10\00\00\00")
  (func (export "_start")
    (drop (call $pipe (i32.const 0)))
    (drop (call $read (i32.load (i32.const 0)) (i32.const 16) (i32.const 1) (i32.const 32)))))
