module github.com/holdfastdev/holdfast/bench/measure

go 1.26.0
