module github.com/vipgen/vipgen/e2e

go 1.26.0

replace github.com/vipgen/vipgen => ../

require github.com/vipgen/vipgen v0.0.0

require golang.org/x/sys v0.49.0 // indirect
