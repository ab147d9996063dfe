// Command singleton runs a crontab on one of many machines, each tick once, and shows what happens.
// `singleton --help` says more.
package main

import (
	"context"
	"os"

	"github.com/go-singleton/singleton/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr, nil))
}
