// Package netproxy puts a network between a server and its clients that can be broken at will: a Proxy forwards
// connections and loses, holds, delays or cuts what they carry, in either direction.
package netproxy
