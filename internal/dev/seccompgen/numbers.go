package main

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// The calls of each architecture, a name and a number a line, by libseccomp's
// names, which are the kernel's.
//
//go:generate go run ./numbers

//go:embed numbers_amd64.txt
var amd64Text string

//go:embed numbers_arm64.txt
var arm64Text string

var (
	amd64Numbers = sync.OnceValue(func() map[string]int { return parseNumbers(amd64Text) })
	arm64Numbers = sync.OnceValue(func() map[string]int { return parseNumbers(arm64Text) })
)

func parseNumbers(text string) map[string]int {
	numbers := make(map[string]int, 400)
	for line := range strings.Lines(text) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			panic("numbers: " + line) // made by generate
		}
		numbers[name] = n
	}
	return numbers
}
