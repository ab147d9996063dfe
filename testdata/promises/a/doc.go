// Package a is a fixture. Its promises:
//
//   - E1 At most one, with a test.
//   - E2 Tested by a comment, a method and a function of another form only.
//   - E10: Something, with a test whose name begins as that of E1 does.
//
// See E3, which is not stated here.
package a
