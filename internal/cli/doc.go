// Package cli is the command line of singleton: one file for each command. Package main only calls Main.
//
// What people read goes to standard output as tables, what programs read with --json; logs and errors go to standard
// error. Whatever comes from a store, a command or a server is printed with its control characters escaped, and the
// password of a store's URL is never printed.
package cli
