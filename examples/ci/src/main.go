// Command greet is what the example's reviewer reads.
package main

import "fmt"

func main() { fmt.Println("hello") }
