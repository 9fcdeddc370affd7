# Reads `objdump -d` of a kernel's object file. Fails where a function that other files share (one
# outside of the kernel's own namespace) holds AVX code: the linker may keep that copy of it.
/^[0-9a-f]+ <.*>:$/ { name = $2; shared = name !~ /avx2|avx512/; ++functions }
shared && /\t(v[a-z]+[0-9a-z]*|k(mov|or|and|test|shift)[a-z]*) / { print name, $0; bad = 1 }
END { if (!functions) print "no functions"; exit bad || !functions }
