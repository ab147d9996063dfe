// Package sim is a simulation.
package sim
