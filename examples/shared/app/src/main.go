// Package main is something to review.
package main

func main() {}
