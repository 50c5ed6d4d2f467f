// Command genaitrace checks what a generative AI service records.
package main

func main() {}
