module tailwright.dev/gat

go 1.21
