//go:build race

package engine

// underRace: everything takes some ten times as long.
const underRace = true
