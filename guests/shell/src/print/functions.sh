f1() { echo $(ls;   pwd) "$( a|b )" `x;  y` ${x:-$( c )} <(d;e) $((  1+2 )); x=$(cat <<EOF
hi $y
EOF
); }
f2() { cat <<EOF > out; echo x
hi $x
EOF
}
f3() { cat <<'EOF' | cat - && echo y
hi $x
EOF
cat <<-E
	tab
	E
}
f4() { for ((;;)) do a; done; for ((i=0;  i<3 ; i++ )) ; do b; done; for x; do c; done; for y in; do d; done; select z in 1 2; do e; done; }
f5() { a & b & c; d || e && f; ! g; time h; time -p i; coproc j; coproc K { l; }; m |& n; }
f6() { a >x 2>&1 <y >>z 2>>w &>v &>>u >|t <>s 3<&4 3>&- <&- >&2 >&$q <<<"s t" {v}>r {v}>&- 3<&4-  >& file 5>&1-; }
f7() { case $x in a|b) c;; (d) e;& f) ;;& *) g; h;; esac; case y in esac; }
f8() { if a; then b; elif c; then d; else e; fi; while a; do b; done; until c; do d; done; }
f9() ( a; b )
f10() { { a; b; }; ( c; d ) > x; { e; } 2>&1; [[ a == b && ( -f c || ! d =~ e ) ]]; (( a + 1 )); }
f11() { a; } > x 2>&1
f12() { x=1 y=(1 2 [3]=4) z+=5 w[1]=6 cmd; declare -a q=(a b); local r=$'a\tb' s=$"c" t='it'\''s' u=a\ b; }
f13() if a; then b; fi
f14() { f() { inner; }; function g { inner2; }; }
f15() { a | b | c & d; (a; b) | { c; d; }; if a; then b; fi | c > x; }
f16() { while read x; do echo $x; done < file; for i in 1 2; do if a; then b; fi; done | sort; }
f17() { echo "a $b ${c} ${d:-"e f"} \$ \" $(g "h") `i`" 'j' k\ l; echo ${a[1]} ${#a[@]} ${!a} ${!a@} ${a/b/c} ${a//b} ${a:1:2} ${a^^} ${a@Q} ${a[@]:1} "${a[*]}"; }
f18() { [[ -n $x ]]; [[ ! -f a ]]; [[ a ]]; [[ a < b ]]; [[ (a) ]]; [[ $x =~ ^a(b|c)$ ]]; }
f19() { cat <<A <<B; x
a
A
b
B
if cat <<C; then
c
C
y; fi; while cat <<D; do
d
D
z; done; }
f20() { (cat <<A)
a
A
{ cat <<B; }
b
B
}
f21 () { a; # comment
b

c; }
f22 () { a && b || c; a &&
b; ! { c; }; ! a | b; time { a; b; }; }
f23() { (( i++ )) && echo; ((a=1,b=2)); let "x = 1"; ( ( a ) ); $(a) $b "c"; }
f24() { eval "x=1"; trap 'echo a' EXIT; set -- "$@" "${x[@]}"; echo {a,b} {1..3} ~ ~/x *.c ?; }
f25() { if ! a; then b; fi; if a && b; then c; fi; if a; b; then c; d; fi; if (a); then { b; }; fi; }
f26() { until [ $x -gt 3 ]; do ((x++)); continue; done; for f in *.c "a b" $x; do echo "$f"; break; done; }
f27() { a=1; a=; a=$b; a+="c"; export A=1 B; readonly C=(1); }
f28() { echo a\
b; echo "c\
d"; echo 'e\
f'; }
f29() { foo <<< $x; bar 2> /dev/null; baz > /dev/null 2>&1; echo hi 1>&2; }
f30() { case a in 'b c') d;; "e"*) f;; [a-z]) g;; ?) ;; esac; }
g1() { x=$(a
b; c
# comment
d;
e); y=$(if a; then b; fi
while c; do d; e
f; done); }
g2() { f() { cat <<E
a
E
}; g; h() { i; } > x; }
g3() { echo "${x/a/'b'}" ${x/'a'/b} ${x%%.*} ${x##*/} ${x:-a b} ${x:=c} ${x:?d e} ${x:+f} ${x-g} "${x#"a"}" ${x: -1} ${x:(-1):2} ${x^} ${x,,[a-z]} ${x~~} ${1} ${10} $1 $@ "$*" $# $? $- $$ $! $0 ${#} ${#x} ${!x} ${!x[@]} ${x[@]} ${x[$i]} ${x["k"]}; }
g4() { a <(b) >(c; d) < <(e | f) >> $g 2> >(h); exec 3<> i; exec 3>&- 4<&0; j 2>&1 >/dev/null; k >&2; l &> /dev/null; }
g5() { ( a ) & ( b; c ) & wait; { d & } ; e & }
g6() { case $1 in -h | --help) usage; exit ;; -*) echo "bad" 1>&2;; esac; case x in a) case y in b) c;; esac;; esac; }
g7() { for i in {1..3} "$@" $(a b); do for ((j = 0 ; j < 3 ; j++)); do (( i == j )) && continue 2; [[ $i =~ ^[0-9]+$ ]] || break; done; done; }
g8() { local a b=1 c="x y" d=(1 2) e; local -a f=(); declare -A g=([a]=1 ["b c"]=2); export H=$h; readonly I='j'; arr[0]=1 arr+=(2) arr[$i]+=3; }
g9() { if [ -f a ] && [ -d b ]; then c; elif [[ -z $d ]]; then e; elif f; then g; else h; fi; if a; then if b; then c; fi; fi; }
g10() { while IFS= read -r line; do echo "$line"; done <<< "$x"; while read l; do :; done < <(ls); until a; do b; done 2>/dev/null | c; }
g11() { ! a; ! a && b; time a | b; time -p { a; }; a | b |& c; a && b | c || d; }
g12() { trap 'rm -f "$tmp"' EXIT INT; eval "$x"; printf '%s\n' "a" 'b' $'c\n' c\\d \$e "f\"g" "h\\i" 'j"k'; }
g13() { function inner { a; }; inner() ( b ); inner2() { c; }; }
g14() { cat <<-'E1' <<"E2" <<\E3 > out
	tabs $x
	E1
two $(x)
E2
three `y`
E3
}
g15() { cat <<E | sort && echo done || exit
$(date) `id` ${x:-"d e"} $((1 + 2)) \$ \\ \` "q" 'r'
E
}
g16() { for x in a; do cat <<E; done; if cat <<F; then a; else b; fi; case x in y) cat <<G;; esac
1
E
2
F
3
G
}
g17() { coproc { a; }; coproc N ( b ); coproc c d; select s in a b; do break; done; select t; do :; done; }
g18() [[ -n $x && ( $y == a* || ! -e z ) && a -nt b && $c != "d e" ]]
g19() (( x > 3 && y < 4 ))
g20() for i in a b; do c; done > out
