module clients

go 1.19

require sandlite v0.0.0

replace sandlite => ../../../sdk/go
