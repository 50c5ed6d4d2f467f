//go:build !race

package guide

const race = false
