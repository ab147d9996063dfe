// Command templates is a program for which the linker keeps all methods.
package main

import (
	"os"
	"text/template"
)

func main() {
	if err := template.Must(template.New("").Parse("{{.}}\n")).Execute(os.Stdout, "x"); err != nil {
		panic(err)
	}
}
