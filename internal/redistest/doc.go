// Package redistest starts private redis-server processes, found on the PATH, and puts a network between them and their
// clients that can be broken at will.
//
// A Server listens on loopback only, in a directory of its own, on a port below the range that the kernel hands out by
// itself, so that packages tested in parallel do not meet. On Linux the kernel kills it when the process that started it
// dies. Sentinels and Cluster are several of them as production has them, with timeouts of a second or two, so that a
// failover takes three. Nodes are several that know nothing of each other. An Authority makes the certificates of servers
// that speak TLS. A Proxy forwards connections and loses, holds, delays or cuts what they carry, in either direction. A
// Clock of internal/clockjump lets the time of one server jump.
package redistest
