
-- KEYS 9: the list of what is put aside, then what is put aside of each bucket
-- ARGV number of the step, number of buckets, their names, then for each change: which bucket, key, put (1 or 0), value
-- Returns {ok} or {gone}. The list expires before anything on it, and belongs to the run of the server that it was begun in,
-- since another one may have lost some of it: what it lists is there. A step that comes again, however late, changes nothing.

local err = check() or foreign(KEYS[9], 'hash') or check_buckets(10)
if err then
  return err
end
local number, count = tonumber(ARGV[1]), tonumber(ARGV[2])
if number == 0 then
  if redis.call('HSETNX', KEYS[9], '@step', 0) == 1 then
    redis.call('HSET', KEYS[9], '@run', this_run())
    redis.call('PEXPIRE', KEYS[9], 600000)
  end
  return {'ok'}
end
local last = tonumber(redis.call('HGET', KEYS[9], '@step'))
if redis.call('HGET', KEYS[9], '@run') ~= this_run() or number > last + 1 then
  return {'gone'}
elseif number <= last then
  return {'ok'}
end
redis.call('HSET', KEYS[9], '@step', ARGV[1])
for i = 3 + count, #ARGV, 4 do
  local which = tonumber(ARGV[i])
  if ARGV[i + 2] == '1' then
    redis.call('HSET', KEYS[9 + which], ARGV[i + 1], ARGV[i + 3])
  else
    redis.call('HDEL', KEYS[9 + which], ARGV[i + 1])
  end
end
for which = 1, count do
  redis.call('HSET', KEYS[9], ARGV[2 + which], '')
  redis.call('PEXPIRE', KEYS[9 + which], 660000)
end
return {'ok'}
