//go:build race

package guide

const race = true
