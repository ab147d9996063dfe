
-- ARGV replica
-- Returns {ok}.

local err = check()
if err then
  return err
end
redis.call('ZREM', sessions, ARGV[1])
redis.call('HDEL', info, ARGV[1])
return {'ok'}
