
-- ARGV id and message of each
-- Returns {ok}. There is room for all: a majority has taken them. Who watches has heard of them where they were posted.

local err = check()
if err then
  return err
end
for i = 1, #ARGV, 2 do
  redis.call('HSETNX', inbox, ARGV[i], ARGV[i + 1])
end
return {'ok'}
