// Package archtest checks the structure of this repository as a test: which package may import which and why, how large functions, interfaces and public
// packages may grow, and which words the code and the documentation use. Each failure says what to do. When a rule itself has to change, edit its table here and
// give the reason beside it.
package archtest
