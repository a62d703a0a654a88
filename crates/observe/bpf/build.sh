#!/bin/sh
# Compiles observe.bpf.c in this folder to the file that is named as argument. The result is the same, byte for byte,
# wherever the folder is, as long as clang has the same version.
set -eu
output=$(realpath "$1")
cd "$(dirname "$0")"
clang-14 -Wall -Wextra -Werror -Wno-unused-function -g -O2 -mcpu=v3 -target bpf \
    -fdebug-compilation-dir=. -ffile-prefix-map="$PWD"=. -c observe.bpf.c -o "$output"
llvm-objcopy-14 --strip-debug "$output"
