module sandlite

go 1.19
