#!/bin/sh
# build.sh SOURCE OBJECT: compiles a source in this folder, such as observe.bpf.c, to the file that is named. The result
# is the same, byte for byte, wherever the folder is, as long as clang has the same version.
set -eu
output=$(realpath "$2")
cd "$(dirname "$0")"
clang-14 -Wall -Wextra -Werror -Wno-unused-function -Wno-unused-parameter -g -O2 -mcpu=v3 -target bpf \
    -fdebug-compilation-dir=. -ffile-prefix-map="$PWD"=. -c "$1" -o "$output"
llvm-objcopy-14 --strip-debug "$output"
