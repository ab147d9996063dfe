// Package election makes one replica of a group its leader.
package election
