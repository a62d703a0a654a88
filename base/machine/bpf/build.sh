#!/bin/sh
# build.sh SOURCE OBJECT: compiles a program for the kernel, such as measure/observe/bpf/observe.bpf.c, to the object that
# is named, which is committed beside its source. The same clang makes the same bytes, wherever the tree is.
set -eu
common=$(cd "$(dirname "$0")" && pwd)
source=$(basename "$1")
object=$(realpath "$2")
cd "$(dirname "$1")"
# A scheduler has an operation named exit. strip-debug removes DWARF, which only says where lines are; types and relocations (BTF) stay.
clang-14 -fno-builtin-exit -Wall -Wextra -Werror -Wno-unused-function -Wno-unused-parameter -g -O2 -mcpu=v3 -target bpf \
    -fdebug-compilation-dir=. -ffile-prefix-map="$PWD"=. -ffile-prefix-map="$common"=common -I"$common" \
    -c "$source" -o "$object"
llvm-objcopy-14 --strip-debug "$object"
