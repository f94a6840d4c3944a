  ;; No subscription, too many, absurdly many.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (call $is (call $poll_oneoff (i32.const 4096) (i32.const 8192) (i32.const 0) (i32.const 40)) (i32.const 28))
    (call $is (call $poll_oneoff (i32.const 4096) (i32.const 8192) (i32.const 1025) (i32.const 40)) (i32.const 28))
    (call $is (call $poll_oneoff (i32.const 4096) (i32.const 8192) (i32.const 0xffffffff) (i32.const 40)) (i32.const 28))
    (call $is (call $poll_oneoff (i32.const 4096) (i32.const 8192) (i32.const 0x05555556) (i32.const 40)) (i32.const 28))
    (call $is (call $poll_oneoff (i32.const 131040) (i32.const 8192) (i32.const 1) (i32.const 40)) (i32.const 21))
    (call $is (call $poll_oneoff (i32.const 0xffffffd0) (i32.const 8192) (i32.const 2) (i32.const 40)) (i32.const 21))
    (call $done))
