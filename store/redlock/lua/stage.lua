
-- KEYS 9: the list of what is put aside, then what is put aside of each bucket
-- ARGV begin (1 or 0), number of buckets, their names, then for each change: which bucket, key, put (1 or 0), value
-- Returns {ok} or {gone}. The list expires before anything on it, and belongs to the run of the server that it was begun in,
-- since another one may have lost some of it: what it lists is there.

local err = check() or foreign(KEYS[9], 'set') or check_buckets(10)
if err then
  return err
end
if ARGV[1] == '1' then
  redis.call('SADD', KEYS[9], begun())
  redis.call('PEXPIRE', KEYS[9], 600000)
elseif redis.call('SISMEMBER', KEYS[9], begun()) == 0 then
  return {'gone'}
end
local count = tonumber(ARGV[2])
for i = 3 + count, #ARGV, 4 do
  local which = tonumber(ARGV[i])
  if ARGV[i + 2] == '1' then
    redis.call('HSET', KEYS[9 + which], ARGV[i + 1], ARGV[i + 3])
  else
    redis.call('HDEL', KEYS[9 + which], ARGV[i + 1])
  end
end
for which = 1, count do
  redis.call('SADD', KEYS[9], ARGV[2 + which])
  redis.call('PEXPIRE', KEYS[9 + which], 660000)
end
return {'ok'}
