  ;; Copies of all memory, over and over: each is paid for.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (loop $again (memory.copy (i32.const 0) (i32.const 65536) (i32.const 65536)) (memory.fill (i32.const 0) (i32.const 1) (i32.const 131072)) (br $again))
    (call $done))
