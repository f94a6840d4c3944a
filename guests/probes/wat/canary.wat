(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 32)
  (func (export "_start")
    (local $at i32)
    (loop $look
      (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then (call $exit (i32.const 1))))
      (i64.store (local.get $at) (i64.const 0x5ec2e75ec2e75ec2))
      (local.set $at (i32.add (local.get $at) (i32.const 4096)))
      (br_if $look (i32.lt_u (local.get $at) (i32.const 2097152))))
    (call $exit (i32.const 0))))
