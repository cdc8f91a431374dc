package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
)

// ask runs a statement and answers its first column, if it has one.
func ask(t *testing.T, url, statement string) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	rows, err := c.Query(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if len(answer) == 0 {
		return ""
	}
	return answer[0]
}

func dieWithServer() {
	s, err := Start("", Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.URL("postgres"))
	self, _ := os.FindProcess(os.Getpid())
	self.Kill()
	select {}
}

func pid(c *exec.Cmd) string { return strconv.Itoa(c.ProcessState.Pid()) }
