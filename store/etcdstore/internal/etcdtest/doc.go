// Package etcdtest starts private etcd servers, one or a cluster of three, from a program that go builds of the module in
// tools/etcd, which pins its version.
//
// A Server listens on loopback only, in a directory of its own, on ports below the range that the kernel hands out by
// itself. It keeps its data over a Restart; it does not wait for the disk. It is ready after a fifth of a second. On Linux
// the kernel kills it when the process that started it dies. The members of a cluster speak to each other over proxies,
// so that each can be cut off from the rest.
package etcdtest
