(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  ;; a clock subscription for 2^64-1 nanoseconds of the monotonic clock
  (data (i32.const 16) "\01\00\00\00")
  (data (i32.const 24) "\ff\ff\ff\ff\ff\ff\ff\ff")
  (func (export "_start")
    (loop $again
      (drop (call $poll (i32.const 0) (i32.const 100) (i32.const 1) (i32.const 200)))
      (br $again))))
