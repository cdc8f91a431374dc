// Command rclone is rclone with the parts that the benchmark of FetchBox compares with: copyurl, and S3 as its destination.
package main

import (
	_ "github.com/rclone/rclone/backend/local"
	_ "github.com/rclone/rclone/backend/s3"
	"github.com/rclone/rclone/cmd"
	_ "github.com/rclone/rclone/cmd/copyurl"
)

func main() { cmd.Main() }
