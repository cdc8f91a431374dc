// Command gotenberg is Gotenberg with the parts that the benchmark of the screenshot service compares with: its API and Chromium.
package main

import (
	gotenberg "github.com/gotenberg/gotenberg/v8/cmd"
	_ "github.com/gotenberg/gotenberg/v8/pkg/modules/api"
	_ "github.com/gotenberg/gotenberg/v8/pkg/modules/chromium"
)

func main() { gotenberg.Run() }
