// Package process runs the private servers of tests: one process at a time, that may be frozen, killed and launched
// again. On Linux the kernel kills it when the process that has started it dies. What it says is part of the error when
// it does not become ready.
package process
