// Lutra serves ultra-low-bit language models on ordinary CPUs.
package main

func main() {}
