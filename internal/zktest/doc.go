// Package zktest starts private ZooKeeper servers, one or an ensemble, from the Debian package zookeeper by plain java.
//
// A Server listens on loopback only, in a directory of its own, on ports below the range that the kernel hands out by
// itself. It keeps its data over a Restart; it does not wait for the disk. A tick is 100 ms, so that sessions of half a
// second are possible. A single server is ready after two seconds and an ensemble of three after four: start one for all
// tests of a package. On Linux the kernel kills it when the process that started it dies. The members of an ensemble
// speak to each other over proxies, so that each can be cut off from the rest.
package zktest
