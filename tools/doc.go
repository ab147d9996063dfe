// Package tools holds no code: its module pins the programs that check this repository, so that neither their versions nor
// their hundreds of dependencies reach a user of the library. Run one with
// go tool -modfile=tools/go.mod golangci-lint.
package tools
